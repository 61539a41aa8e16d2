"""What ``karat lint`` looks for, one subject to a file; ``karat.workflows.lint`` is the verb."""
