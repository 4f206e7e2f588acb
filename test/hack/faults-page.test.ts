import { expect, it } from 'vitest';
import { faultRows, faultsPage, faultTable } from '../../hack/faults-page.ts';

const row = { id: 'F12', what: 'watches answer 410', result: 'fine', figures: '0 writes | none' };
const report = {
  testResults: [
    {
      assertionResults: [
        { status: 'passed', title: 'F12: watches', meta: { faults: [row] } },
        { status: 'failed', title: 'F01 F05: killed and upgraded', meta: { faults: [{ ...row, id: 'F01' }] } },
      ],
    },
    { assertionResults: [{ status: 'passed', title: 'something else' }] },
  ],
};

it('takes the lines of passed scenarios, and shows failed ones as failed', () => {
  expect(faultRows(report).map(({ id, result }) => [id, result])).toEqual([
    ['F01', '**FAILED**'],
    ['F05', '**FAILED**'],
    ['F12', 'fine'],
  ]);
  expect(faultTable([row])).toBe('F12  watches answer 410\n     fine: 0 writes | none');
  expect(faultsPage([row], { machine: '2 cores', version: '1' })).toContain(
    '| F12 | watches answer 410 | fine | 0 writes \\| none |',
  );
});
