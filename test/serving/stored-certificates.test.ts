import { X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { issueServingCertificate } from '../../src/kube/certificate-authority.ts';
import {
  dueCertificates,
  dueClientCertificate,
  type StoredCertificates,
} from '../../src/serving/stored-certificates.ts';

const DAY = 24 * 3_600_000;
const NOW = Date.parse('2026-01-01T00:00:00Z');
const NAMES = ['spillway-webhook.spillway-system.svc', '10.0.0.7'];
const named = (names: readonly string[]) => ({ authority: 'spillway-test-ca', names });
const PURPOSE = named(NAMES);
const authorities = ({ bundle }: StoredCertificates): X509Certificate[] =>
  bundle.split(/(?=-----BEGIN)/).map((pem) => new X509Certificate(pem));
const leaf = ({ serving }: StoredCertificates): X509Certificate => new X509Certificate(serving.cert);

describe('the certificates of a port', () => {
  it('are made when there are none', async () => {
    const made = await dueCertificates(undefined, PURPOSE, NOW);
    const [authority] = authorities(made);
    expect(authorities(made)).toHaveLength(1);
    expect(authority?.ca).toBe(true);
    const certificate = leaf(made);
    expect(certificate.ca).toBe(false);
    expect(authority !== undefined && certificate.checkIssued(authority)).toBe(true);
    expect(certificate.checkHost(NAMES[0] ?? '')).toBe(NAMES[0]);
    expect(certificate.checkIP('10.0.0.7')).toBe('10.0.0.7');
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
  });

  it('stay as they are while all is well', async () => {
    const made = await dueCertificates(undefined, PURPOSE, NOW);
    expect(await dueCertificates(made, PURPOSE, NOW + 200 * DAY)).toBe(made);
    expect(await dueCertificates(made, named(NAMES.slice(0, 1)), NOW)).toBe(made);
  });

  it('are renewed at 70 % of their life, by the same authority', async () => {
    const made = await dueCertificates(undefined, PURPOSE, NOW);
    const renewed = await dueCertificates(made, PURPOSE, NOW + 260 * DAY);
    expect(renewed.bundle).toBe(made.bundle);
    expect(renewed.serving.cert).not.toBe(made.serving.cert);
    expect(Date.parse(leaf(renewed).validTo)).toBe(NOW + 625 * DAY);
  });

  it('are renewed for another name', async () => {
    const made = await dueCertificates(undefined, PURPOSE, NOW);
    const renewed = await dueCertificates(made, named([...NAMES, 'host.example']), NOW);
    expect(renewed.bundle).toBe(made.bundle);
    expect(leaf(renewed).checkHost('host.example')).toBe('host.example');
  });

  it('change authorities while what the former one signed is still trusted', async () => {
    const made = await dueCertificates(undefined, PURPOSE, NOW);
    // Renewed at the last moment before the authority is.
    const before = await dueCertificates(made, PURPOSE, NOW + 2554 * DAY);
    const after = await dueCertificates(before, PURPOSE, NOW + 2556 * DAY);
    expect(before.bundle).toBe(made.bundle);
    expect(after.serving).toBe(before.serving);
    expect(authorities(after)).toHaveLength(2);
    const [, former] = authorities(after);
    expect(former !== undefined && leaf(after).checkIssued(former)).toBe(true);
    const next = await dueCertificates(after, PURPOSE, NOW + 2900 * DAY);
    const [current] = authorities(next);
    expect(next.bundle).toBe(after.bundle);
    expect(current !== undefined && leaf(next).checkIssued(current)).toBe(true);
    const later = await dueCertificates(next, PURPOSE, NOW + 3660 * DAY);
    expect(authorities(later)).toHaveLength(1);
  });

  it('are made anew when a replica whose clock had jumped ahead made them', async () => {
    const ahead = await dueCertificates(undefined, PURPOSE, NOW + 100 * DAY);
    const again = await dueCertificates(ahead, PURPOSE, NOW);
    const [authority] = authorities(again);
    for (const certificate of [authority, leaf(again)])
      expect(Date.parse(certificate?.validFrom ?? '')).toBeLessThanOrEqual(NOW);
    expect(authority !== undefined && leaf(again).checkIssued(authority)).toBe(true);
    expect(await dueCertificates(again, PURPOSE, NOW)).toBe(again);
    expect(await dueCertificates(again, PURPOSE, NOW + 100 * DAY)).toBe(again);
  });

  it('get another leaf of the same authority when only that was made ahead', async () => {
    const made = await dueCertificates(undefined, PURPOSE, NOW);
    const ahead = await dueCertificates(made, PURPOSE, NOW + 260 * DAY);
    const again = await dueCertificates(ahead, PURPOSE, NOW);
    expect(again.bundle).toBe(made.bundle);
    expect(Date.parse(leaf(again).validFrom)).toBeLessThanOrEqual(NOW);
  });

  it('get another leaf when their authority is not valid yet', async () => {
    const ahead = await dueCertificates(undefined, PURPOSE, NOW + 100 * DAY);
    const [cert = ''] = ahead.bundle.split(/(?=-----BEGIN)/);
    const serving = await issueServingCertificate({ cert, key: ahead.authorityKey }, NAMES, NOW, 365 * DAY);
    const again = await dueCertificates({ ...ahead, serving }, PURPOSE, NOW);
    const [authority] = authorities(again);
    expect(authority !== undefined && leaf(again).checkIssued(authority)).toBe(true);
    expect(again.serving).not.toBe(serving);
  });

  it('stay as they are for replicas whose clocks differ by less than five minutes', async () => {
    const made = await dueCertificates(undefined, PURPOSE, NOW);
    expect(await dueCertificates(made, PURPOSE, NOW - 290_000)).toBe(made);
    const client = await dueClientCertificate(undefined, made, 'somebody', NOW);
    expect(await dueClientCertificate(client, made, 'somebody', NOW - 290_000)).toBe(client);
  });

  it.each<[string, (made: StoredCertificates) => StoredCertificates]>([
    ['the bundle', (made) => ({ ...made, bundle: 'x' })],
    ['the key of the authority', (made) => ({ ...made, authorityKey: made.serving.key })],
    ['the key', (made) => ({ ...made, serving: { ...made.serving, key: made.authorityKey } })],
    ['the certificate', (made) => ({ ...made, serving: { ...made.serving, cert: '' } })],
  ])('are made anew when somebody broke %s', async (_what, breaking) => {
    const made = await dueCertificates(undefined, PURPOSE, NOW);
    const again = await dueCertificates(breaking(made), PURPOSE, NOW);
    expect(authorities(again)).toHaveLength(1);
    expect(again.bundle).not.toBe(made.bundle);
    const [authority] = authorities(again);
    expect(authority !== undefined && leaf(again).checkIssued(authority)).toBe(true);
  });
});

describe('the client certificate of who calls the port', () => {
  const user = 'spillway-scheduler-client';
  const subject = ({ cert }: { cert: string }): string => new X509Certificate(cert).subject;

  it('is made, and stays while it is good', async () => {
    const stored = await dueCertificates(undefined, PURPOSE, NOW);
    const client = await dueClientCertificate(undefined, stored, user, NOW);
    const [authority] = authorities(stored);
    const certificate = new X509Certificate(client.cert);
    expect(authority !== undefined && certificate.checkIssued(authority)).toBe(true);
    expect(certificate.subject).toBe(`CN=${user}`);
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
    expect(await dueClientCertificate(client, stored, user, NOW + 200 * DAY)).toBe(client);
  });

  it('is made anew when it is old, another name is wanted, it is broken, or its authority is not trusted', async () => {
    const stored = await dueCertificates(undefined, PURPOSE, NOW);
    const other = await dueCertificates(undefined, PURPOSE, NOW);
    const client = await dueClientCertificate(undefined, stored, user, NOW);
    expect(await dueClientCertificate(client, stored, user, NOW + 260 * DAY)).not.toBe(client);
    expect(subject(await dueClientCertificate(client, stored, `${user}s`, NOW))).toBe(`CN=${user}s`);
    expect(await dueClientCertificate({ ...client, key: stored.authorityKey }, stored, user, NOW)).not.toEqual(client);
    const again = await dueClientCertificate(client, other, user, NOW);
    const [authority] = authorities(other);
    expect(authority !== undefined && new X509Certificate(again.cert).checkIssued(authority)).toBe(true);
  });

  it('is made anew when it is of the future', async () => {
    const stored = await dueCertificates(undefined, PURPOSE, NOW);
    const ahead = await dueClientCertificate(undefined, stored, user, NOW + 300 * DAY);
    const renewed = await dueClientCertificate(ahead, stored, user, NOW);
    expect(Date.parse(new X509Certificate(renewed.cert).validFrom)).toBeLessThanOrEqual(NOW);
  });
});
