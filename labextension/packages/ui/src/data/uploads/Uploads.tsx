/** Keeps uploads going whichever page is shown, and shows how they are. */
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { useHost } from '../../host';
import { Texts } from '../../i18n/Texts';
import { later } from '../../kit/later';
import { keysOfFiles, refresh } from '../live';
import { TusTransport } from './tus';
import { useBatches, useUploads } from './useUploads';

const AREAS = ['data'] as const;
const UploadTray = later(async () => (await import('./UploadTray')).UploadTray);

/** To be placed once, beside the pages. */
export function Uploads(): JSX.Element | null {
  const host = useHost();
  const queue = useUploads();
  const client = useQueryClient();
  const batches = useBatches();
  // Tokens and languages change the host; what is on its way must not care.
  const line = useRef(host);
  useEffect(() => {
    line.current = host;
  });
  useEffect(() => queue.use(new TusTransport(() => line.current)), [queue]);
  useEffect(
    () => queue.onStored(({ folderId }) => refresh(client, keysOfFiles(folderId))),
    [queue, client]
  );
  useEffect(() => {
    const warn = (event: BeforeUnloadEvent): void => {
      if (queue.busy) {
        event.preventDefault();
      }
    };
    window.addEventListener('beforeunload', warn);
    return () => window.removeEventListener('beforeunload', warn);
  }, [queue]);
  if (batches.length === 0) {
    return null;
  }
  return (
    <Texts of={AREAS}>
      <UploadTray batches={batches} />
    </Texts>
  );
}
