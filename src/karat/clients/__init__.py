"""Clients of other services: search functions, webhooks, and a karat server."""
