import type { Service } from '../../test/support/service.js';

/** From here on the service's log is read and dropped, as cheaply as can be: to keep it would cost what is measured. */
export function dropLog(service: Service): void {
  service.process.stdout?.removeAllListeners('data').resume();
}
