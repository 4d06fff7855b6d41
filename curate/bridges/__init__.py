"""Between curate and other tools: Arrow, datatrove, Hugging Face `datasets`, plain files. Both ways."""
