import { describe, expect, it } from 'vitest';
import {
  admitsMode,
  madeInMode,
  type ModeRequest,
  serviceAccountModeOf,
  type ServiceAccountSpec,
} from '../../src/api/service-account-mode.ts';

const NONE: ServiceAccountSpec = { mode: 'None', allowed: [] };
const apiServer = { host: 'api.example.com', port: 443 };
const asked = (more: Partial<ModeRequest> = {}): ReturnType<typeof serviceAccountModeOf> =>
  serviceAccountModeOf({
    pod: undefined,
    namespace: 'shop',
    namespaceLabel: undefined,
    member: 'east',
    spec: NONE,
    ...more,
  });

describe('the service account mode of a pod', () => {
  it.each([
    ['nothing is asked for: what the member has', {}, 'None'],
    ['nothing is asked for: what the member has', { spec: { ...NONE, mode: 'Member' } }, 'Member'],
    ['the namespace asks', { namespaceLabel: 'Member', spec: { ...NONE, allowed: ['Member'] } }, 'Member'],
    [
      'the pod asks before its namespace',
      { pod: 'Host', namespaceLabel: 'Member', spec: { ...NONE, allowed: ['Member', 'Host'], apiServer } },
      'Host',
    ],
    ['None is always admitted', { pod: 'None', namespaceLabel: 'Nonsense', spec: { ...NONE, mode: 'Member' } }, 'None'],
  ] satisfies [string, Partial<ModeRequest>, string][])('%s', (_, request, mode) => {
    expect(asked(request)).toEqual({ mode });
  });

  it.each([
    ['the pod', { pod: 'host' }, 'Annotation spillway.dev/service-account-mode of the pod is "host"'],
    ['an empty label', { namespaceLabel: '' }, 'Label spillway.dev/service-account-mode of namespace "shop" is ""'],
  ] satisfies [string, Partial<ModeRequest>, string][])('is not guessed: %s', (_, request, words) => {
    const answer = asked(request);
    expect(answer).toMatchObject({ refused: { reason: 'ServiceAccountModeInvalid' } });
    expect(JSON.stringify(answer).replaceAll('\\"', '"')).toContain(words);
    expect(JSON.stringify(answer)).toContain('Use None, Member or Host.');
  });

  it.each([
    ['not listed', { pod: 'Host', spec: { ...NONE, apiServer } }],
    ['without an address of the host', { pod: 'Host', spec: { ...NONE, allowed: ['Host'] } }],
    ['by the namespace', { namespaceLabel: 'Member' }],
  ] satisfies [string, Partial<ModeRequest>][])('is admitted by the member: %s', (_, request) => {
    expect(asked(request)).toMatchObject({ refused: { reason: 'ServiceAccountModeNotAllowed' } });
  });

  it('that a member admits at all', () => {
    expect(admitsMode(NONE, 'None')).toBe(true);
    expect(admitsMode(NONE, 'Host')).toBe(false);
    expect(admitsMode({ mode: 'Host', allowed: [] }, 'Host')).toBe(false);
    expect(admitsMode({ mode: 'Host', allowed: [], apiServer }, 'Host')).toBe(true);
  });

  it('is remembered on the member pod', () => {
    const made = (annotations?: Record<string, string>): string =>
      madeInMode({ metadata: annotations === undefined ? {} : { annotations } });
    expect(made({ 'spillway.dev/service-account-mode': 'Host' })).toBe('Host');
    expect(made({ 'spillway.dev/service-account-mode': 'Later' })).toBe('None');
    expect(made()).toBe('None');
  });
});
