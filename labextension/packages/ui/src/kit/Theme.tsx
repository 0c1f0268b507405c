/** The component library's theme, entirely in terms of our own tokens. */
import createCache from '@emotion/cache';
import { CacheProvider } from '@emotion/react';
import { createTheme, ThemeProvider, useColorScheme } from '@mui/material/styles';
import { useEffect, useMemo, type ReactNode } from 'react';
import type { ColorMode } from '../host';

const palette = {
  primary: {
    main: 'var(--bai-primary)',
    dark: 'var(--bai-primary-strong)',
    light: 'var(--bai-primary)',
    contrastText: 'var(--bai-on-primary)'
  },
  error: {
    main: 'var(--bai-error)',
    dark: 'var(--bai-error-strong)',
    light: 'var(--bai-error)',
    contrastText: 'var(--bai-on-error)'
  },
  text: {
    primary: 'var(--bai-text)',
    secondary: 'var(--bai-text-muted)',
    disabled: 'var(--bai-text-faint)'
  },
  background: { default: 'var(--bai-background)', paper: 'var(--bai-surface)' },
  divider: 'var(--bai-border)',
  action: { active: 'var(--bai-text-muted)', hover: 'var(--bai-hover)' }
};

const theme = createTheme({
  cssVariables: {
    cssVarPrefix: 'bai-mui',
    nativeColor: true,
    colorSchemeSelector: 'data-bai-scheme'
  },
  colorSchemes: { light: { palette }, dark: { palette } },
  shape: { borderRadius: 8 },
  typography: {
    fontFamily: 'var(--bai-font)',
    fontSize: 14,
    button: { textTransform: 'none', fontWeight: 600, letterSpacing: 0 }
  },
  components: {
    MuiButtonBase: {
      styleOverrides: {
        root: {
          '&.Mui-focusVisible': { outline: 'var(--bai-focus)', outlineOffset: 2 }
        }
      },
      defaultProps: { disableRipple: true }
    },
    // Colours change at once with the scheme: what fades is unreadable on the way.
    MuiButton: {
      defaultProps: { disableElevation: true },
      styleOverrides: { root: { transition: 'none' } }
    },
    MuiIconButton: { styleOverrides: { root: { transition: 'none' } } },
    MuiDialog: {
      styleOverrides: {
        paper: { border: '1px solid var(--bai-border)', backgroundImage: 'none' }
      }
    },
    MuiMenu: {
      styleOverrides: { paper: { border: '1px solid var(--bai-border)', minWidth: 200 } }
    }
  }
});

interface Props {
  /** The page's CSP nonce: without it a strict policy drops every style. */
  nonce?: string | undefined;
  /** Where the choice of light or dark is kept; null where the host chooses. */
  modeKey: string | null;
  mode?: ColorMode;
  children: ReactNode;
}

export function KitTheme({ nonce, modeKey, mode, children }: Props): JSX.Element {
  // An own key keeps our styles apart from those of other extensions with the library.
  const cache = useMemo(
    () => createCache({ key: 'bai', ...(nonce ? { nonce } : {}) }),
    [nonce]
  );
  return (
    <CacheProvider value={cache}>
      <ThemeProvider
        theme={theme}
        defaultMode="system"
        {...(modeKey === null ? { storageManager: null } : { modeStorageKey: modeKey })}
      >
        {mode ? <FollowMode mode={mode} /> : null}
        {children}
      </ThemeProvider>
    </CacheProvider>
  );
}

function FollowMode({ mode }: { mode: ColorMode }): null {
  const { setMode } = useColorScheme();
  useEffect(() => setMode(mode), [mode, setMode]);
  return null;
}

/** The mode in use, and how to change it. */
export function useColorMode(): { mode: ColorMode; setMode: (mode: ColorMode) => void } {
  const { mode, systemMode, setMode } = useColorScheme();
  const current = mode === 'system' ? systemMode : mode;
  return { mode: current === 'dark' ? 'dark' : 'light', setMode };
}
