/** The uploads of this page: one queue, which outlives what is shown. */
import { useSyncExternalStore } from 'react';
import { UploadQueue, type BatchView } from './queue';

const queue = new UploadQueue();

export function useUploads(): UploadQueue {
  return queue;
}

export function useBatches(): readonly BatchView[] {
  return useSyncExternalStore(queue.subscribe, queue.view);
}
