import { describe, expect, it } from 'vitest';
import { parseJson } from '../../src/kube/json.ts';
import { parseJsonPath, scalarText, valuesAt } from '../../src/kube/json-path.ts';

const STATUS = parseJson(
  JSON.stringify({
    podIP: '10.0.0.7',
    observedGeneration: 3,
    ready: false,
    conditions: [
      { type: 'Ready', status: 'True' },
      { type: 'example.com/Saved', status: 'True', message: 'cp-42' },
    ],
    containerStatuses: [
      { name: 'main', restartCount: 2, lastState: { terminated: { exitCode: 0, message: 'offset-7' } } },
      { name: 'side', restartCount: 0, lastState: {} },
    ],
    nothing: null,
    'a.b': { 'c-d': 'e' },
  }).replace('"ready":false', '"ready":false,"offset":9007199254740993'),
);

describe('a JSON path', () => {
  it.each<[path: string, found: readonly string[]]>([
    ['{.podIP}', ['10.0.0.7']],
    ['{.observedGeneration}', ['3']],
    ['{.ready}', ['false']],
    ['{.offset}', ['9007199254740993']],
    ['{.conditions[?(@.type=="example.com/Saved")].message}', ['cp-42']],
    ["{.conditions[?(@.type == 'example.com/Saved')].message}", ['cp-42']],
    ['{.conditions[?(@.status=="True")].type}', ['Ready', 'example.com/Saved']],
    ['{.containerStatuses[0].lastState.terminated.message}', ['offset-7']],
    ['{.containerStatuses[-1].name}', ['side']],
    ['{.containerStatuses[-3].name}', []],
    ['{.containerStatuses[*].name}', ['main', 'side']],
    ['{.containerStatuses[?(@.lastState.terminated.exitCode==0)].name}', ['main']],
    ['{.containerStatuses[2].name}', []],
    ['{.podIP.length}', []],
    ['{.conditions.length}', []],
    ['{.constructor.name}', []],
    ['{.__proto__}', []],
    ['{.nothing}', []],
    ['{.podIP[0]}', []],
  ])('%s finds %j', (text, found) => {
    const path = parseJsonPath(text);
    expect(path).toBeDefined();
    expect(valuesAt(path ?? [], STATUS).map(scalarText)).toEqual(found);
  });

  it('reads names that are no words in quotes', () => {
    expect(valuesAt(parseJsonPath("{.x['a.b']['c-d']}") ?? [], { x: STATUS })).toEqual(['e']);
  });

  it.each([
    '',
    '.podIP',
    '{}',
    '{.}',
    '{podIP}',
    '{$.podIP}',
    '{..message}',
    '{[0]}',
    '{.a[]}',
    '{.a[0:2]}',
    '{.a[0,1]}',
    '{.a[?(@.b>1)]}',
    '{.a[?(@=="b")]}',
    '{.a[?(@.b=="c)]}',
    '{.a} {.b}',
    'text{.a}',
    '{range .a[*]}{.b}{end}',
    '{.a}\n',
  ])('is not %j', (text) => {
    expect(parseJsonPath(text)).toBeUndefined();
  });

  it('has no text for what is an object or a list', () => {
    expect([{}, [], undefined].map(scalarText)).toEqual([undefined, undefined, undefined]);
  });
});

it('is read in no time, however it is made', () => {
  const long = `{.a${'.b'.repeat(60)}[?(@${'.c'.repeat(60)}==`;
  const began = performance.now();
  expect(parseJsonPath(long)).toBeUndefined();
  expect(performance.now() - began).toBeLessThan(50);
});
