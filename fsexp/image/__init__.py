"""What a guest boots with: the initramfs, and the images of its disks."""
