#include "codec/key_codec.h"
