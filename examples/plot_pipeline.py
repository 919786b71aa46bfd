"""
AnytimeClustering in a pipeline
===============================

`evertree.AnytimeClustering` is an estimator of scikit-learn. It stands at the end of pipelines, learns batch by batch
with ``partial_fit``, and keeps the labels of clusters while it does.
"""

# %%
# Project, then cluster.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

import evertree as et

X, digit = load_digits(return_X_y=True)
pipeline = make_pipeline(PCA(20, random_state=0), et.AnytimeClustering(n_clusters=10))
labels = pipeline.fit_predict(X[:1000])
print(f"first 1,000 points: {adjusted_rand_score(digit[:1000], labels):.2f}")

# %%
# The last step goes on with the rest of the points, in batches, in the space that the first step found.

project, model = pipeline[0], pipeline[-1]
for batch in np.array_split(X[1000:], 8):
    model.partial_fit(project.transform(batch))
print(f"all points: {adjusted_rand_score(digit, model.labels_):.2f}")

# %%
# The digits that each cluster holds.

counts = np.array([np.bincount(digit[model.labels_ == cluster], minlength=10) for cluster in model.partition_.ids])
fig, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
image = ax.imshow(counts, cmap="Blues")
ax.set(xticks=range(10), yticks=range(len(counts)), xlabel="digit", ylabel="cluster")
ax.set_yticklabels(model.partition_.ids)
fig.colorbar(image, label="points")
plt.show()

# %%
# New points get the cluster of the nearest live point, and the tree stays as it is.

print(pipeline.predict(X[:5]), model.labels_[:5])
