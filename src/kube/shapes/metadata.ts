import { fields, flag, listOf, number, text, textMap, texts, time } from './shape.ts';

/** Of every object. Whether it is known which object it is (name, namespace, UID) is looked at before, see list-page.ts. */
export const metadata = fields({
  name: text,
  namespace: text,
  uid: text,
  resourceVersion: text,
  generation: number,
  labels: textMap,
  annotations: textMap,
  creationTimestamp: time,
  deletionTimestamp: time,
  deletionGracePeriodSeconds: number,
  finalizers: texts,
  // Large, and read by nobody here: caches leave it out.
  managedFields: () => undefined,
  ownerReferences: listOf(
    fields({ apiVersion: text, kind: text, name: text, uid: text, controller: flag, blockOwnerDeletion: flag }, [
      'apiVersion',
      'kind',
      'name',
      'uid',
    ]),
  ),
});

export const conditions = listOf(
  fields(
    { type: text, status: text, reason: text, message: text, lastTransitionTime: time, observedGeneration: number },
    ['type', 'status'],
  ),
);
