"""Cold data control: groups that read old messages from the disk are held back (coldDataFlowControlEnable)."""
