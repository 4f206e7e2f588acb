import { describe, expect, it } from 'vitest';
import type { Node, Pod } from '../../src/api/wire.ts';
import { fitTogether } from '../../src/capacity/fits-together.ts';

const node = (name: string, cpu: string, more: Partial<NonNullable<Node['spec']>> = {}, labels = {}): Node => ({
  metadata: { name, labels },
  spec: more,
  status: { allocatable: { cpu, memory: '8Gi', pods: '10' } },
});
const pod = (cpu: string, spec: Partial<Pod['spec']> = {}, phase?: 'Succeeded'): Pod => ({
  metadata: { name: 'p' },
  spec: { containers: [{ name: 'main', resources: { requests: { cpu } } }], ...spec },
  ...(phase === undefined ? {} : { status: { phase } }),
});
const times = (count: number, one: Pod): Pod[] => Array.from({ length: count }, () => one);

describe('pods that are to fit together', () => {
  it('share what the nodes have left', () => {
    const nodes = [node('a', '2'), node('b', '3')];
    expect(fitTogether(times(5, pod('1')), nodes, [])).toBe(5);
    expect(fitTogether(times(6, pod('1')), nodes, [])).toBe(5);
    expect(fitTogether(times(5, pod('1')), nodes, [pod('1', { nodeName: 'a' }), pod('1')])).toBe(4);
    expect(fitTogether(times(5, pod('1')), nodes, [pod('1', { nodeName: 'a' }, 'Succeeded')])).toBe(5);
  });
  it('do not fit on two halves', () => {
    expect(fitTogether([pod('2')], [node('a', '1'), node('b', '1')], [])).toBe(0);
  });
  it('are put where they leave least, the largest first', () => {
    expect(fitTogether([pod('1'), pod('1'), pod('3')], [node('a', '3'), node('b', '2')], [])).toBe(3);
  });
  it('count as pods, too', () => {
    expect(fitTogether(times(11, pod('10m')), [node('a', '8')], [])).toBe(10);
  });
  it('keep off nodes that they may not use', () => {
    const nodes = [
      node('cordoned', '8', { unschedulable: true }),
      node('tainted', '8', { taints: [{ key: 'a', effect: 'NoSchedule' }] }),
      node('ssd', '1', {}, { disk: 'ssd' }),
    ];
    expect(fitTogether(times(2, pod('1')), nodes, [])).toBe(1);
    expect(fitTogether([pod('1', { nodeSelector: { disk: 'hdd' } })], nodes, [])).toBe(0);
    expect(fitTogether(times(2, pod('1', { tolerations: [{ operator: 'Exists' }] })), nodes, [])).toBe(2);
  });
});
