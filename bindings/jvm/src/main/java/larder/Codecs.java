package larder;

import java.util.Arrays;
import java.util.Comparator;

/**
 * The codecs of {@link Codec}. They read only what they would write: other bytes of a key would be
 * looked for in another place than that in which they are found, and polls would not end.
 */
final class Codecs {
    private Codecs() {}

    static final class Longs implements Codec<Long> {
        @Override
        public void write(Long value, Output out) {
            out.integer(value);
        }

        @Override
        public Long read(Input in) {
            return in.integer();
        }
    }

    static final class Integers implements Codec<Integer> {
        @Override
        public void write(Integer value, Output out) {
            out.integer(value);
        }

        @Override
        public Integer read(Input in) {
            long n = in.integer();
            if (n != (int) n) {
                throw new LarderException("what is stored is no int: " + n);
            }
            return (int) n;
        }
    }

    /** The bits of a double as a number that is ordered as doubles are. */
    static final class Doubles implements Codec<Double> {
        @Override
        public void write(Double value, Output out) {
            long bits = Double.doubleToLongBits(value);
            // A negative one has all bits turned, another its sign.
            out.putLong(bits ^ (bits >> 63 | Long.MIN_VALUE));
        }

        @Override
        public Double read(Input in) {
            long bits = in.getLong();
            long turned = bits ^ (~bits >> 63 | Long.MIN_VALUE);
            double value = Double.longBitsToDouble(turned);
            // There is one NaN.
            if (in.remaining() > 0 || Double.doubleToLongBits(value) != turned) {
                throw new LarderException("what is stored is no double");
            }
            return value;
        }
    }

    static final class Bytes implements Codec<byte[]> {
        @Override
        public void write(byte[] value, Output out) {
            out.put(value);
        }

        @Override
        public byte[] read(Input in) {
            return in.get(in.remaining());
        }

        @Override
        public Comparator<byte[]> comparator() {
            return Arrays::compareUnsigned;
        }

        @Override
        public boolean same(byte[] a, byte[] b) {
            return Arrays.equals(a, b);
        }
    }

    static final class Strings implements Codec<String> {
        @Override
        public void write(String value, Output out) {
            for (int i = 0; i < value.length(); i++) {
                char c = value.charAt(i);
                if (c < 0x80) {
                    out.put(c);
                } else if (c < 0x800) {
                    out.put(0xC0 | c >> 6);
                    out.put(0x80 | c & 0x3F);
                } else {
                    out.put(0xE0 | c >> 12);
                    out.put(0x80 | c >> 6 & 0x3F);
                    out.put(0x80 | c & 0x3F);
                }
            }
        }

        @Override
        public String read(Input in) {
            int length = in.remaining();
            byte[] ascii = in.get(length);
            for (byte b : ascii) {
                if (b < 0) {
                    return decoded(ascii);
                }
            }
            return new String(ascii, java.nio.charset.StandardCharsets.ISO_8859_1);
        }

        private static String decoded(byte[] bytes) {
            StringBuilder text = new StringBuilder(bytes.length);
            for (int i = 0; i < bytes.length; ) {
                int first = bytes[i] & 0xFF;
                if (first < 0x80) {
                    text.append((char) first);
                    i++;
                } else if (first >> 5 == 6) {
                    text.append(above(0x7F, (first & 0x1F) << 6 | next(bytes, i + 1)));
                    i += 2;
                } else if (first >> 4 == 14) {
                    int low = next(bytes, i + 1) << 6 | next(bytes, i + 2);
                    text.append(above(0x7FF, (first & 0x0F) << 12 | low));
                    i += 3;
                } else {
                    throw new LarderException("what is stored is no text");
                }
            }
            return text.toString();
        }

        /** A character that has no shorter form, as those up to another one have. */
        private static char above(int shorter, int c) {
            if (c <= shorter) {
                throw new LarderException("what is stored is no text");
            }
            return (char) c;
        }

        private static int next(byte[] bytes, int i) {
            if (i >= bytes.length || (bytes[i] & 0xC0) != 0x80) {
                throw new LarderException("what is stored is no text");
            }
            return bytes[i] & 0x3F;
        }
    }
}
