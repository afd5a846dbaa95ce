"""The frame of every page: shell, bar, address, context, controls, progress and throttling.

The way of a sentence through the app:

1. `address` reads the address; `shell` chooses the page.
2. `bar` draws the sentence and the model, which are chosen once for every page.
3. `context` opens this model (`catalog`), settles its part, layer and head, and holds all of it for
   the run. Its forward pass over the text (`inference`) is made when first asked for.
4. The rest of the frame and the page take this context: the lists of the bar, the words that are
   unknown, the picture of the pass, and the page's view (`views/<page>`), which asks `analysis` for
   what it shows and gives it to a chart (`charts`) or a component (`components`).
5. What a reader chooses on the page goes through `controls` or `persistent_choices` back into
   the address.

What lasts from one run to the next is in the `session`: what only one view needs is a class of that
view (`state_of`), a sentence that is said later or for long is a note (`notes`), and what a widget
holds is read and chosen through `widget_state`.
"""
