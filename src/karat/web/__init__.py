"""The web app: karat on pages, and its JSON API."""
