"""The frame of every page: shell, bar, address, context, controls, progress and throttling.

The way of a sentence through the app:

1. `url` reads the address; `shell` chooses the page.
2. `bar` draws what is chosen once for every page: text, model, part, layer, head.
3. `context` holds this choice for the run, opens the model (`catalog`) and makes its forward
   pass over the text (`inference`) when first asked for.
4. The page hands the context to its view (`views/<page>`), which asks `analysis` for what it
   shows and gives it to a chart (`charts`) or a component (`components`).
5. What a reader chooses on the page goes through `controls` or `persistent_choices` back into
   the address.
"""
