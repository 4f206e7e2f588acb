import { X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { dueCertificates, type StoredCertificates } from '../../src/serving/stored-certificates.ts';

const DAY = 24 * 3_600_000;
const NOW = Date.parse('2026-01-01T00:00:00Z');
const NAMES = ['spillway-webhook.spillway-system.svc', '10.0.0.7'];
const authorities = ({ bundle }: StoredCertificates): X509Certificate[] =>
  bundle.split(/(?=-----BEGIN)/).map((pem) => new X509Certificate(pem));
const leaf = ({ serving }: StoredCertificates): X509Certificate => new X509Certificate(serving.cert);

describe('the certificates of the webhook', () => {
  it('are made when there are none', async () => {
    const made = await dueCertificates(undefined, NAMES, NOW);
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
    const made = await dueCertificates(undefined, NAMES, NOW);
    expect(await dueCertificates(made, NAMES, NOW + 200 * DAY)).toBe(made);
    expect(await dueCertificates(made, NAMES.slice(0, 1), NOW)).toBe(made);
  });

  it('are renewed at 70 % of their life, by the same authority', async () => {
    const made = await dueCertificates(undefined, NAMES, NOW);
    const renewed = await dueCertificates(made, NAMES, NOW + 260 * DAY);
    expect(renewed.bundle).toBe(made.bundle);
    expect(renewed.serving.cert).not.toBe(made.serving.cert);
    expect(Date.parse(leaf(renewed).validTo)).toBe(NOW + 625 * DAY);
  });

  it('are renewed for another name', async () => {
    const made = await dueCertificates(undefined, NAMES, NOW);
    const renewed = await dueCertificates(made, [...NAMES, 'host.example'], NOW);
    expect(renewed.bundle).toBe(made.bundle);
    expect(leaf(renewed).checkHost('host.example')).toBe('host.example');
  });

  it('change authorities while what the former one signed is still trusted', async () => {
    const made = await dueCertificates(undefined, NAMES, NOW);
    // Renewed at the last moment before the authority is.
    const before = await dueCertificates(made, NAMES, NOW + 2554 * DAY);
    const after = await dueCertificates(before, NAMES, NOW + 2556 * DAY);
    expect(before.bundle).toBe(made.bundle);
    expect(after.serving).toBe(before.serving);
    expect(authorities(after)).toHaveLength(2);
    const [, former] = authorities(after);
    expect(former !== undefined && leaf(after).checkIssued(former)).toBe(true);
    const next = await dueCertificates(after, NAMES, NOW + 2900 * DAY);
    const [current] = authorities(next);
    expect(next.bundle).toBe(after.bundle);
    expect(current !== undefined && leaf(next).checkIssued(current)).toBe(true);
    const later = await dueCertificates(next, NAMES, NOW + 3660 * DAY);
    expect(authorities(later)).toHaveLength(1);
  });

  it.each<[string, (made: StoredCertificates) => StoredCertificates]>([
    ['the bundle', (made) => ({ ...made, bundle: 'x' })],
    ['the key of the authority', (made) => ({ ...made, authorityKey: made.serving.key })],
    ['the key', (made) => ({ ...made, serving: { ...made.serving, key: made.authorityKey } })],
    ['the certificate', (made) => ({ ...made, serving: { ...made.serving, cert: '' } })],
  ])('are made anew when somebody broke %s', async (_what, breaking) => {
    const made = await dueCertificates(undefined, NAMES, NOW);
    const again = await dueCertificates(breaking(made), NAMES, NOW);
    expect(authorities(again)).toHaveLength(1);
    expect(again.bundle).not.toBe(made.bundle);
    const [authority] = authorities(again);
    expect(authority !== undefined && leaf(again).checkIssued(authority)).toBe(true);
  });
});
