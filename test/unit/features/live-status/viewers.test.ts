import type { WrittenSections } from '../../../../src/features/live-status/shared.js';
import { StatusViewers } from '../../../../src/features/live-status/viewers.js';
import { BoundedQueue } from '../../../../src/shared/async.js';
import { type ClientText, clientText } from '../../../../src/shared/client.js';
import { type AsyncHandler, atRoute, type Primary } from '../../../../src/worker/http/exchange.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { until } from '../../../support/basics/until.js';
import { viewStatus } from '../../../support/clients/event-stream.js';
import { RawConnection, request } from '../../../support/clients/raw-http.js';
import { countsIn, type ExpressServer, serveWith } from '../../../support/doors/express-server.js';

const whole: WrittenSections = { slots: '{"max":1}', queue: '{"max":2}' };
const wholeBody = { slots: { max: 1 }, queue: { max: 2 } };

/** A subscription as the primary sees it. */
class Subscription {
  readonly items = new BoundedQueue<WrittenSections>();
  readonly withNames: boolean;
  isOpen = true;

  constructor(withNames: boolean, signal: AbortSignal) {
    this.withNames = withNames;
    signal.addEventListener('abort', () => {
      this.isOpen = false;
      this.items.cut(signal.reason);
    });
    this.items.push(whole);
  }
}

/** Viewers served over HTTP, by a primary whose events the test sends. */
class Viewing implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly closing = new AbortController();
  readonly subscriptions: Subscription[] = [];
  isAllowed = true;
  readonly viewers: StatusViewers;
  readonly server: ExpressServer;

  static async open(): Promise<Viewing> {
    const show: AsyncHandler = async (req, res) => {
      const withNames = req.path === '/named';
      const client = clientText.parse(req.headers['x-client'] ?? 'key alice');
      await viewing.viewers.show(res, { client, withNames, isAllowed: () => viewing.isAllowed });
    };
    const server = await serveWith([atRoute('/status/stream'), show]);
    const viewing = new Viewing(server);
    return viewing;
  }

  private constructor(server: ExpressServer) {
    this.server = server;
    const stream = (_name: string, { withNames }: { withNames: boolean }, signal: AbortSignal) => {
      const subscription = new Subscription(withNames, signal);
      this.subscriptions.push(subscription);
      return subscription.items;
    };
    this.viewers = new StatusViewers({ stream } as unknown as Primary, this.clock, this.closing.signal);
  }

  get open(): Subscription[] {
    return this.subscriptions.filter(({ isOpen }) => isOpen);
  }

  view(path: '/named' | '/nameless' = '/named', client: ClientText = 'key alice') {
    return viewStatus({ url: `http://127.0.0.1:${this.server.port}` }, { 'x-client': client }, path);
  }

  /** Opens a viewer that has received its snapshot. */
  async follow(path: '/named' | '/nameless' = '/named') {
    const viewer = await this.view(path);
    expect(await viewer.next('snapshot')).toEqual(wholeBody);
    return viewer;
  }

  async tell(sections: WrittenSections): Promise<void> {
    for (const { items } of this.open) items.push(sections);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]();
  }
}

let viewing: Viewing;
beforeEach(async () => {
  viewing = await Viewing.open();
});
afterEach(() => viewing[Symbol.asyncDispose]());

describe('The viewers of the status', () => {
  it('receive a snapshot at once, and then the changes', async () => {
    await using viewer = await viewing.view();
    expect(viewer.status).toBe(200);
    expect(viewer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(await viewer.next('snapshot')).toEqual(wholeBody);
    await viewing.tell({ slots: '{"max":9}' });
    expect(await viewer.next('change')).toEqual({ slots: { max: 9 } });
  });

  it('share one subscription, and a later viewer receives the current snapshot', async () => {
    await using first = await viewing.follow();
    await viewing.tell({ slots: '{"max":9}' });
    await first.next('change');
    await using second = await viewing.view();
    expect(await second.next('snapshot')).toEqual({ slots: { max: 9 }, queue: { max: 2 } });
    await viewing.tell({ queue: '{"max":8}' });
    for (const viewer of [first, second]) expect(await viewer.next('change')).toEqual({ queue: { max: 8 } });
    expect(viewing.subscriptions).toHaveLength(1);
  });

  it('have separate subscriptions with and without names, which end with the last viewer', async () => {
    const viewers = [await viewing.follow(), await viewing.follow('/nameless'), await viewing.follow('/nameless')];
    expect(viewing.open.map(({ withNames }) => withNames)).toEqual([true, false]);
    for (const viewer of viewers) viewer.leave();
    await until(() => viewing.open.length === 0, 'the subscriptions to end');
    expect(viewing.clock.pending).toBe(0);
    await using _next = await viewing.follow();
    expect(viewing.open).toHaveLength(1);
  });

  it('are limited to two hundred: others are refused with a retry time', async () => {
    const views = await Promise.all(Array.from({ length: 200 }, () => viewing.view()));
    await using refused = await viewing.view('/nameless');
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '10']);
    expect(await refused.body()).toMatchObject({ error: 'concurrency_limited' });
    for (const view of views) view.leave();
    await until(() => viewing.open.length === 0, 'the viewers to be gone');
    await using next = await viewing.view();
    expect(next.status).toBe(200);
  });

  it('leave room for viewers of other clients, however many one client has', async () => {
    const greedy = await Promise.all(Array.from({ length: 200 }, () => viewing.view('/nameless', 'key eve')));
    await using admin = await viewing.view('/named', 'key ada');
    expect(await admin.next('snapshot')).toEqual(wholeBody);
    expect((await viewing.view('/nameless', 'key eve')).status).toBe(429);
    for (const one of greedy) one.leave();
  });

  it('receive nothing more within seconds after they lose access', async () => {
    await using viewer = await viewing.follow();
    await viewing.clock.advance(5000);
    viewing.isAllowed = false;
    await viewing.clock.advance(5000);
    expect(await viewer.remainingEvents()).toEqual([]);
    expect(viewing.open).toEqual([]);
  });

  it('are disconnected when the worker is about to exit, and told to use a new connection', async () => {
    await using viewer = await viewing.view();
    expect(viewer.headers.get('connection')).toBe('close');
    await viewer.next('snapshot');
    viewing.closing.abort();
    expect(await viewer.remainingEvents()).toEqual([]);
    await using late = await viewing.view();
    expect([late.status, await late.remainingEvents()]).toEqual([200, []]);
    expect(viewing.open).toEqual([]);
  });

  it('are disconnected when the primary sends no more', async () => {
    await using viewer = await viewing.follow('/nameless');
    viewing.subscriptions[0]?.items.fail(new Error('a defect'));
    expect(await viewer.remainingEvents()).toEqual([]);
  });

  it('are counted as answered, and not timed', async () => {
    const viewer = await viewing.follow();
    viewer.leave();
    await until(() => viewing.server.log.entries.length === 1, 'the record');
    expect(viewing.server.log.entries).toMatchObject([{ fields: { status_code: 200 } }]);
    const counts = await countsIn(viewing.server.metrics);
    const labels = { method: 'GET', route: '/status/stream', code: '200' };
    expect(counts('http_requests_total')).toEqual([{ labels, value: 1 }]);
    expect([counts('http_request_duration_seconds'), counts('http_aborted_requests_total')]).toEqual([[], []]);
  });

  it('receive only the headers for HEAD', async () => {
    using connection = await RawConnection.open(viewing.server.port);
    connection.send(request('HEAD /named'));
    const { status, headers } = await connection.answer({ bodyless: true });
    expect([status, headers['content-type']]).toEqual([200, 'text/event-stream; charset=utf-8']);
    await connection.closed();
    expect(viewing.subscriptions).toEqual([]);
  });
});

describe('A viewer that does not read', () => {
  /** More than the kernel buffers for a client that reads nothing. */
  const much = JSON.stringify('x'.repeat(1024 * 1024));

  async function tellMuch(): Promise<void> {
    for (let count = 0; count < 40; count++) {
      await viewing.tell({ queue: much });
      await new Promise(setImmediate);
    }
  }

  it('has at most one event buffered, and receives a new snapshot when it reads again', async () => {
    await using viewer = await viewing.follow();
    await tellMuch();
    await viewing.tell({ queue: '{"max":7}' });
    const names: string[] = [];
    for (;;) {
      const { event, data } = await viewer.any();
      names.push(event);
      if (event === 'snapshot') {
        expect(data).toEqual({ slots: { max: 1 }, queue: { max: 7 } });
        break;
      }
    }
    expect(names.length).toBeLessThan(30);
    expect(names.filter((name) => name === 'snapshot')).toHaveLength(1);
  });

  it('is cut off when its worker is about to exit', async () => {
    await using _viewer = await viewing.follow();
    await tellMuch();
    viewing.closing.abort();
    await until(() => viewing.server.log.entries.length === 1, 'its end');
  });
});
