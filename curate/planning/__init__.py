"""`curate plan`: what a run would do, why a stage must run (`staleness`, `differences`), what it costs (`costs`)."""
