import { expect, test } from 'vitest';
import { beyondLimits, houseFigures } from '../../hack/lint/house-figures.ts';

const figures = (files: Record<string, string>) => houseFigures(new Map(Object.entries(files)));

test('rooms, floors and arrows are counted from imports', () => {
  const small = {
    'src/kube/a.ts': "import './b.ts';",
    'src/kube/b.ts': '',
    'src/nodes/a.ts': "import '../kube/a.ts';\nimport type { B } from '../kube/b.ts';",
    'src/main.ts': "import './nodes/a.ts';",
  };
  expect(figures(small)).toEqual({ rooms: 3, floors: 3, arrows: 2, mutual: [] });
  const mutual = { ...small, 'src/kube/b.ts': "import type { A } from '../nodes/a.ts';" };
  expect(figures(mutual)).toMatchObject({ arrows: 3, mutual: ['src/kube', 'src/main.ts', 'src/nodes'] });
});

test('a house that is more tangled than its page says is told of', () => {
  const page = 'prints how simple it is: at most 30 rooms on 8 floors, with 104 arrows between them';
  const mutual: string[] = [];
  expect(beyondLimits({ rooms: 30, floors: 8, arrows: 104, mutual }, page)).toEqual([]);
  expect(beyondLimits({ rooms: 30, floors: 8, arrows: 105, mutual }, page)).toEqual([
    'src has 105 arrows between rooms, and docs/design.md (section 2) allows 104',
  ]);
  expect(beyondLimits({ rooms: 1, floors: 1, arrows: 1, mutual }, '')).not.toEqual([]);
});
