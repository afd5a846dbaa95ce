"""Checkpoints from and to disk: every bound on a folder that is not trusted, and every refusal.

- `files`: small files, bounded and strict; `CheckpointError`
- `folder_config`: the config of a folder
- `weights`: names, types, shapes and numbers of safetensors files
- `inspection`: the tensors of a folder against its config
- `memory`: how much memory a model may take
- `checkpoint`: load and save; the state of a training
- `export`: a model of ours as a folder of a published family
"""
