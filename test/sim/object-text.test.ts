import { describe, expect, it } from 'vitest';
import { MemoryApi } from '../fixtures/memory-api.ts';
import { answerText, textOf } from './object-text.ts';

const PODS = '/api/v1/namespaces/shop/pods';

function podNamed(name: string): object {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'shop' }, spec: {} };
}

describe('answers of simulated API servers', () => {
  it('are what JSON.stringify makes of them, lists without and with objects too', () => {
    const api = new MemoryApi();
    const ask = (path: string): string => {
      const answer = api.handle({ method: 'GET', path, query: {}, body: undefined, contentType: '' });
      const text = answerText(answer);
      expect(text).toBe(JSON.stringify(answer));
      return text;
    };
    ask(PODS);
    for (const name of ['a', 'b']) api.put(`${PODS}/${name}`, podNamed(name));
    ask(PODS);
    ask(`${PODS}/a`);
    api.edit(`${PODS}/a`, { metadata: { labels: { app: 'web' } } });
    expect(ask(PODS)).toContain('"app":"web"');
    expect(ask(`${PODS}/a`)).toContain('"app":"web"');
  });

  it('are made anew of what may change', () => {
    const object = { a: 1 };
    expect(textOf(object)).toBe('{"a":1}');
    object.a = 2;
    expect(textOf(object)).toBe('{"a":2}');
  });

  it('come from collections that are read anew after each change', () => {
    const { objects, put, remove } = open();
    const names = (): string[] => objects.valuesIn(PODS).map(({ metadata }) => metadata.name);
    expect(names()).toEqual([]);
    put('b');
    put('a');
    const before = objects.valuesIn(PODS);
    expect(names()).toEqual(['a', 'b']);
    expect(objects.valuesIn(PODS)).toBe(before);
    put('b');
    expect(objects.valuesIn(PODS)[1]).not.toBe(before[1]);
    remove('a');
    expect(names()).toEqual(['b']);
    expect(before).toHaveLength(2);
  });
});

function open(): { objects: MemoryApi['objects']; put: (name: string) => void; remove: (name: string) => void } {
  const api = new MemoryApi();
  return {
    objects: api.objects,
    put: (name) => {
      api.put(`${PODS}/${name}`, podNamed(name));
    },
    remove: (name) => api.delete(`${PODS}/${name}`),
  };
}
