"""The report: one HTML file that is read offline, on a phone, on paper, and by keyboard."""
