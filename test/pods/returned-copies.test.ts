import { expect, it } from 'vitest';
import { UID_LABEL } from '../../src/api/marks.ts';
import { ReturnedCopies } from '../../src/pods/returned-copies.ts';
import { memberPod } from '../fixtures/pods.ts';

it('those that wait go on as soon as the last copy that has not been told to end is kept', () => {
  const copies = ['a', 'b'].map((uid) => {
    const { metadata, ...rest } = memberPod();
    return { ...rest, metadata: { ...metadata, uid, labels: { ...metadata.labels, [UID_LABEL]: `of-${uid}` } } };
  });
  const kept = new Set<string>();
  const again: string[] = [];
  const returned = new ReturnedCopies({
    fencing: { told: new Set(['of-a', 'of-b']) },
    member: {
      reachable: () => true,
      pods: { byIndex: (_, of) => copies.filter(({ metadata }) => metadata.labels[UID_LABEL] === of) },
    },
    isOurs: () => true,
    isKept: (uid) => kept.has(uid),
    requeue: (key) => void again.push(key),
    monotonic: () => 0,
  });
  expect(returned.comeFirst).toBe(true);
  returned.heldBack('shop/web');
  kept.add('a');
  returned.keptChanged();
  expect([returned.comeFirst, again]).toEqual([true, []]);
  kept.add('b');
  returned.keptChanged();
  expect([returned.comeFirst, again]).toEqual([false, ['shop/web']]);
});
