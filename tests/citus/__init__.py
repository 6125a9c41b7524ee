"""What is tried on a cluster of Citus before a release; its parts are tested on partitions."""
