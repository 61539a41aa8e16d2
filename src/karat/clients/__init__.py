"""Asking live services, one kind to a file: searches, webhooks, and a karat that is served."""
