"""Commands of `curate`: each is a thin layer over a library call, in a module that is imported when it is asked for.

`table` lists them. A module has, for each command, a function that is given the command's parser, adds its arguments
and sets `command=`, the function that gets what was parsed and returns the exit status.
`store_options`, `recipe_options` and `results` say how commands are told of a store, a recipe and a result.
"""
