"""The kernel of patterns of stages that stores partial matches one by one."""
