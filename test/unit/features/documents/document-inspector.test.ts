import { createInspection, type DocumentTask } from '../../../../src/features/documents/document-inspection.js';
import { DocumentInspector, inspectionThread } from '../../../../src/features/documents/document-inspector.js';
import { systemClock } from '../../../../src/shared/clock.js';
import { type Attachment, type FileDocument, isDocument } from '../../../../src/shared/job.js';
import { documentOf, textDocument } from '../../../../src/worker/jobs/documents.js';
import { pdfOf } from '../../../support/basics/pdf.js';

const base64 = (file: Buffer) => file.toString('base64');
const pdf = (path: string, file = pdfOf({ pages: 2 })): Attachment => ({
  at: 0,
  ...documentOf('application/pdf', base64(file), path),
});
const text = (path: string, data: string): Attachment => ({ at: 0, ...textDocument(data, path) });

/** Returns an inspector, and the inspections that it has begun. `release` ends them. */
function waitingInspector() {
  const tasks: { readonly line: string; readonly task: DocumentTask; release(): void }[] = [];
  const inspect = createInspection();
  const inspector = new DocumentInspector(
    (task, line) =>
      new Promise((resolve) => {
        tasks.push({ line, task, release: () => resolve(inspect(task)) });
      }),
  );
  return { inspector, tasks };
}

function pagesOf(attachments: readonly Attachment[] = []): (number | undefined)[] {
  return attachments.filter(isDocument).map(({ pages }: FileDocument) => pages);
}

describe('The documents of a job', () => {
  it('are inspected in the question, the results and the history, equal ones once', async () => {
    const inspect = createInspection();
    const seen: string[] = [];
    const inspector = new DocumentInspector(async (task, line) => {
      seen.push(line);
      return inspect(task);
    });
    const results = [{ id: 'c', text: '', isError: false, images: [pdf('b')] }];
    const history = [{ role: 'user', text: 'Hi', images: [pdf('c'), text('d', 'hello')] }] as const;
    const job = { text: 'What?', images: [pdf('a')], results, history };
    const { images, results: shown, history: earlier, ...rest } = await inspector.inspectJob(job, 'key lab/ada');
    expect(pagesOf([...images, ...(shown[0]?.images ?? []), ...(earlier[0]?.images ?? [])])).toEqual([
      2,
      2,
      2,
      undefined,
    ]);
    expect(JSON.stringify([images, shown, earlier])).not.toMatch(/"(path|form)"|"digest":""/);
    expect([seen, rest]).toEqual([['key lab'], { text: 'What?' }]);
  });

  it('leave a job without documents as it is', async () => {
    const job = { text: 'Hi', images: [{ mediaType: 'image/png', data: 'AAAA', at: 0 }] } as const;
    expect(await waitingInspector().inspector.inspectJob(job, 'key ada')).toBe(job);
  });

  it('are refused above their number, also in messages whose files are not counted before', async () => {
    const images = Array.from({ length: 21 }, (_, index) => text(`files.${index}`, 'a'));
    await expect(waitingInspector().inspector.inspectJob({ images }, 'key ada')).rejects.toThrow(
      'files.20: is document 21: a request may have 20',
    );
  });

  it('are refused while this client has too many that wait, and other clients are served', async () => {
    const { inspector, tasks } = waitingInspector();
    const large = text('a', 'x'.repeat(70 * 1024 ** 2));
    const first = inspector.inspectJob({ images: [large] }, 'key ada/one');
    await expect(inspector.inspectJob({ images: [large] }, 'key ada/two')).rejects.toMatchObject({
      code: 'concurrency_limited',
      retryAfterSeconds: expect.any(Number),
    });
    const other = inspector.inspectJob({ images: [pdf('b')] }, 'key bob');
    for (const { release } of tasks) release();
    expect(pagesOf((await other).images)).toEqual([2]);
    await first;
    const again = inspector.inspectJob({ images: [large] }, 'key ada');
    tasks.at(-1)?.release();
    expect((await again).images).toMatchObject([{ digest: expect.stringMatching(/./) }]);
  });
});

describe('The findings about a PDF', () => {
  it('are remembered for later requests', () => {
    let inspections = 0;
    const inspect = createInspection(() => {
      inspections++;
      return { pages: 3 };
    });
    const task = { form: 'base64', mediaType: 'application/pdf', data: base64(pdfOf()) } as const;
    expect([inspect(task), inspect({ ...task, data: `${task.data}\n` })]).toMatchObject([{ pages: 3 }, { pages: 3 }]);
    expect(inspections).toBe(1);
  });
});

describe('The thread of the inspections', () => {
  it('does not block the event loop, and gives each client its turn', async () => {
    const { inspect, close } = inspectionThread(systemClock, (error) => {
      throw error;
    });
    const task = (file: Buffer) => ({ form: 'base64', mediaType: 'application/pdf', data: base64(file) }) as const;
    const ended: string[] = [];
    const large = task(pdfOf({ fillerBytes: 8e6 }));
    const many = Array.from({ length: 8 }, () => inspect(large, 'key ada').then(() => ended.push('ada')));
    const [finding] = await Promise.all([inspect(task(pdfOf({ pages: 7 })), 'key bob')]);
    ended.push('bob');
    expect(finding).toMatchObject({ pages: 7, data: null });
    await Promise.all(many);
    expect(ended.indexOf('bob')).toBeLessThan(3);
    await close();
  });
});
