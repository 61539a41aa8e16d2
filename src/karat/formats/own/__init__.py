"""Files that only karat writes: baselines, policies, certificates, histories."""
