"""Checkpoints from and to disk: every bound on a folder that is not trusted, and every refusal.

- `safe_files`: small files, bounded and strict; `CheckpointError`
- `folder_config`: the config of a folder or GGUF file
- `stored_weights`: tensors by name, whose numbers are read when they are asked for
- `gguf_header`, `gguf_weights`: those of GGUF files, quantized or not
- `weight_files`: those of a folder, most often in safetensors files
- `gguf_vocabulary`, `gguf_pretokenizers`, `gguf_tokenizer`: their tokenizer as a tokenizer.json
- `checkpoint_tokenizer`: text to token IDs and back; the texts that a tokenizer is made of
- `adapter_files`, `adapter_settings`: LoRA adapters as the peft library's files
- `module_patterns`: regular expressions of a stranger, matched in bounded time
- `inspection`: the tensors of a folder against its config
- `memory`: how much memory a model may take
- `checkpoint`: load and save; the state of a training
- `export`: a model of ours as a folder of a published family
- `gguf_conversion`: a GGUF file as such a folder
"""
