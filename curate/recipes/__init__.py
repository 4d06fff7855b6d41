"""What a recipe says: datasets that are not there yet, tokens, repeats, and the stages that they compile to.

`graph` has the datasets and their methods, `cells` the tokens, `repeats` what a corpus repeats, `recipe` the decorator,
`stages` the way from a graph to stages with an order, `show` its configuration in words.
"""
