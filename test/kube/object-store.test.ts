import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keyOf, type KubeObject } from '../../src/kube/object.ts';
import { ObjectStore, type DeleteEvidence } from '../../src/kube/object-store.ts';
import { compareResourceVersions } from '../../src/kube/resource-version.ts';

interface Item extends KubeObject {
  color: string;
}

function item(name: string, version: number, uid = 'u1', color = 'red'): Item {
  return { metadata: { name, namespace: 'a', uid, resourceVersion: String(version) }, color };
}

/** A store whose listener keeps a copy by what it is told alone; telling nonsense fails at once. */
function listenedStore() {
  const told = new Map<string, Item>();
  const log: string[] = [];
  const label = (o: Item): string => `${o.metadata.name}@${o.metadata.resourceVersion}`;
  const store = new ObjectStore<Item>(
    {
      added(o) {
        expect(told.has(keyOf(o))).toBe(false);
        told.set(keyOf(o), o);
        log.push(`added ${label(o)}`);
      },
      updated(o, old) {
        expect(told.get(keyOf(o))).toBe(old);
        expect(o.metadata.uid).toBe(old.metadata.uid);
        told.set(keyOf(o), o);
        log.push(`updated ${label(o)}`);
      },
      deleted(o, evidence: DeleteEvidence) {
        expect(told.get(keyOf(o))).toBe(o);
        told.delete(keyOf(o));
        log.push(`deleted ${label(o)} ${evidence}`);
      },
    },
    { color: (o) => [o.color] },
  );
  return { store, told, log };
}

function contents(objects: Iterable<Item>): string[] {
  return [...objects].map((o) => `${o.metadata.name} ${o.metadata.uid} ${o.metadata.resourceVersion}`).toSorted();
}

type Event = { type: 'put' | 'delete'; object: Item };

/** A true history of a collection: every object changes with one counter, names are used again with other UIDs. */
const history = fc
  .array(
    fc.tuple(fc.constantFrom('x', 'y', 'z'), fc.constantFrom('put', 'put', 'delete'), fc.constantFrom('red', 'blue')),
    {
      maxLength: 20,
    },
  )
  .map((steps) => {
    const alive = new Map<string, Item>();
    const events: Event[] = [];
    for (const [at, [name, step, color]] of steps.entries()) {
      const version = at + 8; // crosses a change in length
      const old = alive.get(name);
      if (step === 'put') {
        const object = item(name, version, old?.metadata.uid ?? `uid-${version}`, color);
        alive.set(name, object);
        events.push({ type: 'put', object });
      } else if (old !== undefined) {
        alive.delete(name);
        events.push({ type: 'delete', object: item(name, version, old.metadata.uid, old.color) });
      }
    }
    return { events, alive };
  });

function feed(store: ObjectStore<Item>, events: Iterable<Event>): void {
  for (const { type, object } of events) {
    if (type === 'put') {
      store.put(object);
    } else {
      store.delete(object);
    }
  }
}

describe('object store', () => {
  it('ends at the truth whatever the order, and however often events come', () => {
    const disordered = history.chain((truth) =>
      fc.tuple(
        fc.constant(truth),
        fc.shuffledSubarray([...truth.events, ...truth.events], { minLength: truth.events.length * 2 }),
      ),
    );
    fc.assert(
      fc.property(disordered, ([{ alive }, events]) => {
        const { store, told } = listenedStore();
        feed(store, events);
        expect(contents(store.values())).toEqual(contents(alive.values()));
        expect(contents(told.values())).toEqual(contents(alive.values()));
        for (const color of ['red', 'blue']) {
          const expected = [...alive.values()].filter((o) => o.color === color);
          expect(contents(store.byIndex('color', color))).toEqual(contents(expected));
          expect([...store.eachByIndex('color', color)]).toEqual(store.byIndex('color', color));
        }
        const colors = new Set([...alive.values()].map(({ color }) => color));
        expect(new Set(store.indexValues('color'))).toEqual(colors);
      }),
      { numRuns: 1000 },
    );
  });

  it('ends at the list after any part of the events', () => {
    const partly = history.chain((truth) => fc.tuple(fc.constant(truth), fc.shuffledSubarray(truth.events)));
    fc.assert(
      fc.property(partly, ([{ alive }, events]) => {
        const { store, told } = listenedStore();
        feed(store, events);
        store.replace(new Map([...alive.values()].map((o) => [keyOf(o), o])));
        expect(contents(store.values())).toEqual(contents(alive.values()));
        expect(contents(told.values())).toEqual(contents(alive.values()));
        const indexed = [...store.byIndex('color', 'red'), ...store.byIndex('color', 'blue')];
        expect(contents(indexed)).toEqual(contents(alive.values()));
      }),
    );
  });

  it('reports another UID as a delete and an add', () => {
    const { store, log } = listenedStore();
    store.put(item('x', 5, 'u1'));
    store.put(item('x', 9, 'u2'));
    store.replace(new Map([['a/x', item('x', 12, 'u3')]]));
    expect(log).toEqual(['added x@5', 'deleted x@5 watched', 'added x@9', 'deleted x@9 relisted', 'added x@12']);
  });

  it('takes the deletion of another object of that name for no evidence about this one', () => {
    const { store, log } = listenedStore();
    store.put(item('x', 9, 'u2'));
    expect(store.delete(item('x', 7, 'u1'))).toBe('stale');
    // Versions that cannot be compared tell nothing.
    const late = item('x', 0, 'u1');
    expect(store.delete({ ...late, metadata: { ...late.metadata, resourceVersion: 'v-12' } })).toBe('stale');
    expect(store.get('a/x')?.metadata.uid).toBe('u2');
    // What came later of that name proves that this one is gone, but nobody saw its own deletion.
    expect(store.delete(item('x', 12, 'u3'))).toBe('inferred');
    expect(log).toEqual(['added x@9', 'deleted x@9 relisted']);
  });

  it('does not bring a deleted object back', () => {
    const { store, log } = listenedStore();
    store.put(item('x', 5));
    expect(store.delete(item('x', 7))).toBe('applied');
    expect(store.put(item('x', 6))).toBe('stale');
    expect(store.put(item('x', 5))).toBe('stale');
    expect(store.size).toBe(0);
    expect(log).toEqual(['added x@5', 'deleted x@5 watched']);
  });

  it('keeps what it knows of an object that is listed but could not be transformed', () => {
    const { store, log } = listenedStore();
    store.put(item('x', 5));
    expect(store.replace(new Map([['a/x', undefined]]))).toBe(0);
    expect(store.size).toBe(1);
    expect(log).toEqual(['added x@5']);
  });

  it('shows the whole replacement before it tells of it', () => {
    const sizes: number[] = [];
    const store: ObjectStore<Item> = new ObjectStore<Item>({
      added: () => sizes.push(store.size),
      updated: () => undefined,
      deleted: () => undefined,
    });
    store.replace(new Map([item('x', 5), item('y', 6)].map((o) => [keyOf(o), o])));
    expect(sizes).toEqual([2, 2]);
  });
});

describe('resourceVersions', () => {
  it('compare as integers of any length', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: 2n ** 80n }), fc.bigInt({ min: 1n, max: 2n ** 80n }), (a, b) => {
        const order = compareResourceVersions(String(a), String(b)) ?? Number.NaN;
        expect(Math.sign(order)).toBe(a < b ? -1 : a > b ? 1 : 0);
      }),
    );
  });

  it.each([
    ['abc', '5'],
    ['', '5'],
    ['05', '5'],
    [undefined, '5'],
  ])('do not compare %j with %j', (a, b) => {
    expect(compareResourceVersions(a, b)).toBeUndefined();
  });
});
