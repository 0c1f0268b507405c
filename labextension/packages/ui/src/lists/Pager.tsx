import { ChevronLeft, ChevronRight } from 'lucide-react';
import { useId } from 'react';
import { useTranslation } from 'react-i18next';
import { Button } from '../kit/Button';
import { PAGE_SIZES } from './useView';

interface Props {
  /** Null where nobody knows how many pages lie before. */
  page: number | null;
  first: boolean;
  last: boolean;
  size: number;
  onSize(size: number): void;
  onPrevious(): void;
  onNext(): void;
}

export function Pager(props: Props): JSX.Element {
  const { t } = useTranslation();
  const { page, first, last, size, onSize, onPrevious, onNext } = props;
  const id = useId();
  const before = page === null ? t('list.toFirst') : t('list.previous');
  return (
    <nav className="bai-pager" aria-label={t('list.pages')}>
      <span className="bai-page-size">
        <label htmlFor={id}>{t('list.rows')}</label>
        <select id={id} value={size} onChange={event => onSize(Number(event.target.value))}>
          {PAGE_SIZES.map(each => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </span>
      {first && last ? null : (
        <span className="bai-page-steps">
          <Button
            disabled={first}
            icon={<ChevronLeft size={16} aria-hidden />}
            onClick={onPrevious}
          >
            {before}
          </Button>
          {page === null ? null : <span>{t('list.page', { page })}</span>}
          <Button
            disabled={last}
            icon={<ChevronRight size={16} aria-hidden />}
            onClick={onNext}
          >
            {t('list.next')}
          </Button>
        </span>
      )}
    </nav>
  );
}
