import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { generatedFiles } from '../../hack/generate-manifests.ts';

const files = await generatedFiles();

describe('generated files', () => {
  it.each([...files.keys()])('%s is what the code says', async (path) => {
    expect(await readFile(new URL(`../../${path}`, import.meta.url), 'utf8')).toBe(files.get(path));
  });
});
