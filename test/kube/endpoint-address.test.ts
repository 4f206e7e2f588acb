import { describe, expect, it } from 'vitest';
import { isEndpointAddress } from '../../src/kube/endpoint-address.ts';

describe('an address that an endpoint can have', () => {
  it.each([
    '240.0.0.1',
    '169.253.0.1',
    '1.127.0.1',
    '64:ff9b::102:304',
    '10.0.0.1',
    '192.168.0.1',
    '203.0.113.7',
    '1.2.3.4',
    'fd00::1',
    '2001:db8::1',
    'fec0::1',
  ])('can be %s', (address) => {
    expect(isEndpointAddress(address)).toBe(true);
  });

  it.each([
    '0.0.0.0',
    '127.0.0.1',
    '127.255.255.255',
    '169.254.169.254',
    '224.0.0.1',
    '239.255.255.255',
    '::',
    '0:0:0:0:0:0:0:0',
    '::1',
    '0:0:0:0:0:0:0:1',
    'fe80::1',
    'FEBF::1',
    'ff02::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:10.0.0.1',
    '::ffff:a00:1',
    'fd00::1%eth0',
    '010.0.0.1',
    '10.0.0.1/32',
    ' 10.0.0.1',
    'web.example',
    '',
  ])('is not %j', (address) => {
    expect(isEndpointAddress(address)).toBe(false);
  });
});
