"""What the pages share: text, tasks, runs, figures, components and the reader's choices."""
