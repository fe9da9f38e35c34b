"""The virtual machine: its description, its life, what it sent, and how it ended."""

import os

# Libvirt logs to stderr from the moment it is loaded; its errors are raised as well, and said once is enough.
os.environ.setdefault("LIBVIRT_LOG_OUTPUTS", "4:file:/dev/null")
