"""From a Book to the pages of the reading site: values in, text out, no disk."""
