import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { GRANTS, rightsPage } from '../../hack/rights-page.ts';
import { rightsOf } from '../../hack/rights.ts';

const root = new URL('../../', import.meta.url);
const manifests = readdirSync(new URL('manifests/', root), { recursive: true, encoding: 'utf8' }).filter((file) =>
  file.endsWith('.yaml'),
);

describe('the page of rights', () => {
  it('has every manifest that grants rights', () => {
    const granting = manifests.filter((file) =>
      readFileSync(new URL(`manifests/${file}`, root), 'utf8').includes('roleRef:'),
    );
    expect(granting.length).toBeGreaterThan(4);
    expect(GRANTS.flatMap(({ files }) => files).sort()).toEqual(granting.sort());
  });

  it.each(GRANTS.map((grant) => [grant.title, grant] as const))('%s: says of each line what it is for', (_, grant) => {
    const rights = rightsOf(grant.files, grant.roles);
    expect(rights.length).toBeGreaterThan(0);
    const page = rightsPage();
    for (const { why, verbs, resources } of rights) {
      expect(why, `${verbs.join()} ${resources.join()}`).not.toBe('');
      expect(page).toContain(why);
    }
  });

  it('links to pages that are there', () => {
    const target = /\]\(([^)]+)\)/.exec(rightsPage())?.[1] ?? '';
    expect(existsSync(new URL(`docs/reference/${target}`, root))).toBe(true);
  });
});
