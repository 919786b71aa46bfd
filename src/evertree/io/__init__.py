"""Trees as files and as text for other programs: archives, Newick, JSON, graphs, data frames, HTML."""
