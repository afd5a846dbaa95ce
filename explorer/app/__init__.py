"""The frame of every page: shell, bar, address, context, controls, progress and throttling.

How a sentence goes through the app:

1. `address` reads the address; `shell` chooses the page. 2. `bar` draws the sentence and the model,
which are chosen once for every page. 3. `context` opens this model (`catalog`) and settles its
part, layer and head. The forward pass over the text (`inference`) runs when it is first needed. 4.
The rest of the frame and the page use this context: the lists of the bar, the note on unknown
words, the miniature, and the page's view (`views/<page>`), which calls `analysis` and gives the
result to a chart (`charts`) or a component (`components`). 5. `controls` and `persistent_choices`
write what a reader chooses on the page into the address.

The `session` holds the state between two runs. State of one view is a class of that view
(`state_of`), a message for a later run is a note (`messages`), and `widget_state` reads and sets
the values of widgets.
"""
