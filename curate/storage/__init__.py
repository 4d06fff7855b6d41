"""Where files of a store and of sources lie: a local folder, or objects behind S3's or Google's interface.

`files` says what every place must do, `local` and `objects` do it, `opening` chooses by URL. Nothing outside this
package knows where a file lies; `curate.store.Store` is what the rest of curate uses.
"""
