import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { oneAtATime } from '../../shared/async.js';
import { yieldToEventLoop } from '../../shared/clock.js';
import { openMetricsOf } from '../../shared/metrics.js';
import type { AsyncHandler, Primary } from '../http/exchange.js';
import { sendTyped } from '../http/responses.js';

const zip = promisify(gzip);

/**
 * Serves the metrics. Simultaneous requests share one call to the primary and its bytes. The primary limits the rate of
 * calls.
 */
export function getMetrics(primary: Primary): AsyncHandler {
  const scraped = oneAtATime(async () => (await primary.call('metrics', {})).text);
  const forms = {
    plain: formOf('text/plain; version=0.0.4; charset=utf-8', scraped),
    open: formOf('application/openmetrics-text; version=1.0.0; charset=utf-8', async () =>
      openMetricsOf(await scraped()),
    ),
  };
  let sent: Promise<void> = Promise.resolve();
  return async (req, res) => {
    const { type, bytes, zipped } = forms[wantsOpenMetrics(req.get('accept')) ? 'open' : 'plain'];
    const isZipped = req.acceptsEncodings('gzip') === 'gzip';
    const content = await (isZipped ? zipped() : bytes());
    res.vary('Accept, Accept-Encoding');
    if (isZipped) res.set('Content-Encoding', 'gzip');
    sent = sent.then(yieldToEventLoop); // the text is large: lets other requests run between two responses
    await sent;
    sendTyped(res, type, content);
  };
}

function formOf(type: string, text: () => Promise<string>) {
  const bytes = oneAtATime(async () => Buffer.from(await text()));
  return { type, bytes, zipped: oneAtATime(async () => zip(await bytes())) };
}

/** Whether the client prefers OpenMetrics 1.0.0 at least as much as the older text format, which is the default. */
function wantsOpenMetrics(accept = ''): boolean {
  const weights = { 'application/openmetrics-text': 0, 'text/plain': 0 };
  for (const range of accept.toLowerCase().split(',')) {
    const [name = '', ...params] = range.split(';').map((part) => part.trim());
    const paramOf = (key: string) => params.find((param) => param.startsWith(`${key}=`))?.slice(key.length + 1);
    const type = name as keyof typeof weights;
    if (!Object.hasOwn(weights, type) || (type !== 'text/plain' && (paramOf('version') ?? '1.0.0') !== '1.0.0'))
      continue;
    weights[type] = Math.max(weights[type], Number(paramOf('q') ?? 1) || 0);
  }
  const open = weights['application/openmetrics-text'];
  return open > 0 && open >= weights['text/plain'];
}
