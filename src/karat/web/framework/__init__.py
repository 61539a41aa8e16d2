"""What all pages share: sign-in, forms, lists, jobs, errors."""
