"""What people type: one file per noun; commands import what they need when they run."""
