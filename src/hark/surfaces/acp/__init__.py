"""An editor as a surface: the Agent Client Protocol on stdio."""
