"""karat's own files: baselines, policies, certificates, histories, golden sets, workspaces."""
