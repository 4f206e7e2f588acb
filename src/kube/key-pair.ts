import { createPrivateKey, createPublicKey, X509Certificate, type KeyObject } from 'node:crypto';

/** Whether `key` is the private key of the first certificate in `cert`. */
export function isKeyPair(cert: string, key: string): boolean {
  try {
    const publicKey = createPublicKey(createPrivateKey(key));
    return spki(publicKey).equals(spki(new X509Certificate(cert).publicKey));
  } catch {
    return false;
  }
}

function spki(key: KeyObject): Buffer {
  return key.export({ type: 'spki', format: 'der' });
}
