import { describe, expect, it } from 'vitest';
import { type Overriders, overridersSchema } from '../../src/api/overriders.ts';
import { OverrideError } from '../../src/overrides/override-error.ts';
import { resolveVariables } from '../../src/overrides/variables.ts';
import { EAST } from './rendered-pod.ts';

const resolve = (overriders: object, member = EAST): Overriders =>
  resolveVariables(overridersSchema.parse(overriders), member);
const label = (value: string, member = EAST): string | undefined =>
  resolve({ labelsOverrider: [{ operator: 'add', value: { a: value } }] }, member).labelsOverrider?.[0]?.value['a'];

describe('resolveVariables', () => {
  it.each([
    ['${member.name}', 'east'],
    ['in-${member.region}-of-${member.provider}', 'in-eu-1-of-acme'],
    ['${member.zone}', 'eu-1a'],
    ["${member.labels['tier']}", 'gold'],
    ["${member.labels['topology.kubernetes.io/building']}", 'b7'],
    ['$${member.name}', '${member.name}'],
    ['$$${member.name}', '$${member.name}'],
    ['${HOME} $(MODE) ${', '${HOME} $(MODE) ${'],
    ['${members.name}', '${members.name}'],
    ['', ''],
  ])('%s is %s', (text, expected) => {
    expect(label(text)).toBe(expected);
  });

  it('is done once: values are not looked into again', () => {
    expect(label("${member.labels['x']}", { ...EAST, labels: { x: '${member.name}' } })).toBe('${member.name}');
  });

  it.each([
    ['${member.nothing}', 'the variable ${member.nothing} is not known'],
    ['${member.labels.tier}', 'the variable ${member.labels.tier} is not known'],
    ["${member.labels['none']}", 'cluster "east" has no value for'],
    ["${member.labels['constructor']}", 'cluster "east" has no value for'],
  ])('refuses %s', (text, problem) => {
    expect(() => label(text)).toThrow(problem);
  });

  it('refuses what the member does not say, and the one zone of several', () => {
    expect(() => label('${member.region}', { ...EAST, region: undefined })).toThrow('no value for ${member.region}');
    expect(() => label('${member.zone}', { ...EAST, zones: ['a', 'b'] })).toThrow('no value for ${member.zone}');
  });

  it('says where the variable is', () => {
    try {
      resolve({ plaintext: [{ path: '/data/x', operator: 'add', value: { deep: ['${member.what}'] } }] });
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(OverrideError);
      expect((error as OverrideError).path).toBe('overriders.plaintext[0].value.deep[0]');
    }
  });

  it('reaches every value and nothing that names a place', () => {
    const V = '${member.name}';
    const overriders = resolve({
      imageOverrider: [{ component: 'Registry', operator: 'replace', value: `${V}.example` }],
      argsOverrider: [{ containerName: 'app', operator: 'add', value: [V] }],
      envOverrider: [
        {
          operator: 'add',
          value: [
            { name: 'A', value: V },
            { name: 'B', valueFrom: { configMapKeyRef: { name: `c-${V}`, key: 'k' } } },
          ],
        },
      ],
      imagePullSecretsOverrider: [{ operator: 'add', value: [`pull-${V}`] }],
      tolerationsOverrider: [{ operator: 'add', value: [{ key: 'k', value: V }] }],
      runtimeClassOverrider: { operator: 'add', value: V },
      storageClassOverrider: [{ from: V, operator: 'add', value: V }],
      fieldOverrider: [
        { fieldPath: `/data/${V}`, json: [{ subPath: `/${V}`, operator: 'add', value: { [V]: [V, 1, null] } }] },
      ],
      plaintext: [{ path: `/data/${V}`, operator: 'add', value: V }],
    });
    expect(overriders).toEqual({
      imageOverrider: [{ component: 'Registry', operator: 'replace', value: 'east.example', scope: 'Containers' }],
      argsOverrider: [{ containerName: 'app', operator: 'add', value: ['east'] }],
      envOverrider: [
        {
          operator: 'add',
          value: [
            { name: 'A', value: 'east' },
            { name: 'B', valueFrom: { configMapKeyRef: { name: 'c-east', key: 'k' } } },
          ],
        },
      ],
      imagePullSecretsOverrider: [{ operator: 'add', value: ['pull-east'] }],
      tolerationsOverrider: [{ operator: 'add', value: [{ key: 'k', value: 'east' }] }],
      runtimeClassOverrider: { operator: 'add', value: 'east' },
      storageClassOverrider: [{ from: V, operator: 'add', value: 'east' }],
      fieldOverrider: [
        { fieldPath: `/data/${V}`, json: [{ subPath: `/${V}`, operator: 'add', value: { [V]: ['east', 1, null] } }] },
      ],
      plaintext: [{ path: `/data/${V}`, operator: 'add', value: 'east' }],
    });
  });

  it('is the same object when there are no variables', () => {
    const overriders = overridersSchema.parse({
      plaintext: [{ path: '/data/x', operator: 'add', value: { a: ['b'] } }],
    });
    expect(resolveVariables(overriders, EAST)).toBe(overriders);
  });
});
